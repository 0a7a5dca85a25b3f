"""Samples with a place, for maps: read with their coordinates, looked at, divided in space, and handed out as batches.

plots = open_plots("plots.csv", target="richness")             points with covariates
print(render_plots(inspect_plots(plots)))                      what is odd about them
split = split_plots(plots, "blocked", val=0.1, test=0.2)       whole blocks on one side
layers = layers_of(plots)                                      (N, L, H, W): bands, covariates, longitude, latitude
"""
