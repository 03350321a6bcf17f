"""Makes the templates of the Helm chart from the manifests themselves: ``python -m manifests.templating``.

Base, components and overlays are the only source; `places` says which values of the chart decide what there.
With the values of ``chart/fairway/ci`` the chart renders what the overlays build.
"""
