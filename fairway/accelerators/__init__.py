"""What accelerators are: which resource name means what; devices that are shared, cut or counted in groups."""
