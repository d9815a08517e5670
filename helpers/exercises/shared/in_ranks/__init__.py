"""What ranks run beside the answers of several notebooks: no truth belongs here."""
