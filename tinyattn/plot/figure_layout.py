"""Choose the size of names and numbers, which depends on the final positions in a figure.

The positions are known only after Matplotlib's layout, which takes most of the drawing time.
Therefore, the figures do not request an additional layout, but wait for the layout that is computed
anyway when they are shown. All panels of a figure wait for the same layout.
"""

from matplotlib.layout_engine import ConstrainedLayoutEngine

from tinyattn.plot.style import style


class Layout(ConstrainedLayoutEngine):
    """Matplotlib's constrained layout, after which the steps in `waiting` run once."""

    def __init__(self):
        super().__init__()
        self.waiting = []  # for each panel its steps, of which one runs after each layout

    def execute(self, figure):
        super().execute(figure)
        waiting, self.waiting = self.waiting, []
        for panels in zip(*waiting, strict=True):
            for axes in figure.axes:
                axes.apply_aspect()  # square cells take less than the available space
            with style():
                for step in panels:
                    step()
            super().execute(figure)


def after_layout(figure, first, second):
    """Call two functions when the positions in a figure are known.

    Args:
        figure   matplotlib Figure
        first    function without arguments, called after the layout. It may change the sizes
        second   function without arguments, called after the layout that follows `first`
    """
    engine = figure.get_layout_engine()
    if isinstance(engine, Layout):
        engine.waiting.append((first, second))
        figure.stale = True
        return
    for step in (first, second):  # a figure made by other code gets its layout now
        figure.draw_without_rendering()
        step()
