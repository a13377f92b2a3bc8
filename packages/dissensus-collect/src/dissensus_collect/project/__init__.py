"""What is collected: collect.toml, the language of its pages, its orders and its cost."""
