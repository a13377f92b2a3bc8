"""How close a model is to people, and whether that number is honest."""
