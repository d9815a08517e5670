"""What ranks import for notebook 12; 13 builds its models here, too."""
