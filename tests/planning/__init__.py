"""Plans, held against simulations whose truth is known."""
