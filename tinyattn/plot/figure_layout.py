"""What can only be decided when a picture's places are known: the size of names and numbers.

Places are known after Matplotlib's layout, which takes most of the time of a drawing. So pictures
in this style wait with these decisions for the layout that is computed anyway, when they are
shown, and all panels of a picture wait for the same one.
"""

from matplotlib.layout_engine import ConstrainedLayoutEngine

from tinyattn.plot.style import style


class Layout(ConstrainedLayoutEngine):
    """Matplotlib's constrained layout, and once after it the steps that wait for it."""

    def __init__(self):
        super().__init__()
        self.waiting = []  # for each panel its steps, to be done after one layout each

    def execute(self, figure):
        super().execute(figure)
        waiting, self.waiting = self.waiting, []
        for panels in zip(*waiting, strict=True):
            for axes in figure.axes:
                axes.apply_aspect()  # cells that must be square take less than their place
            with style():
                for step in panels:
                    step()
            super().execute(figure)


def after_layout(figure, first, second):
    """Call `first` when places are known, and `second` when they are known again after it."""
    engine = figure.get_layout_engine()
    if isinstance(engine, Layout):
        engine.waiting.append((first, second))
        figure.stale = True
        return
    for step in (first, second):  # a figure that somebody else has made is laid out now
        figure.draw_without_rendering()
        step()
