"""The web app: `mirada studio`. Its pages are built from frontend/ into static/."""
