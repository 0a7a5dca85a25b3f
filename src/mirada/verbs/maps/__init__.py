"""From a trained model and rasters to a map: tiles with a halo, one writer, a Cloud-Optimised GeoTIFF, previews."""
