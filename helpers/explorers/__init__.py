"""Pictures with controls: change a number, and see the effect immediately. Use them with `explore`."""
