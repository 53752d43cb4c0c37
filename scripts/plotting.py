"""What the plot scripts share."""
import sys


def pyplot():
    """matplotlib.pyplot for files; ends the script with how to get it where it is missing."""
    try:
        import matplotlib
    except ImportError:
        sys.exit("this script needs matplotlib; install it with apt-get install python3-matplotlib, or pip")
    matplotlib.use("Agg")
    import matplotlib.pyplot

    return matplotlib.pyplot
