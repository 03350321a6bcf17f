"""The real programs on a real kube-apiserver with Karmada's schemas; needs ``KUBEBUILDER_ASSETS``."""
