"""One module for each kind of file. Each has ``read(data, reading)``, which gives its sections."""
