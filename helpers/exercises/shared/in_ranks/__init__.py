"""What ranks run together with the answers of several notebooks: no truth belongs here."""
