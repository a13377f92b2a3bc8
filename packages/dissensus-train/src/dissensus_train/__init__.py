"""What needs PyTorch: deliveries and losses, training, studies, bundles, basins, OOD detection, integrations."""
