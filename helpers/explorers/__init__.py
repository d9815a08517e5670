"""Pictures with controls: change a number, and see at once what it does. `explore` is the door."""
