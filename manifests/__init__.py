"""What is applied to clusters, as plain YAML; a package so that an installed Fairway has it too."""
