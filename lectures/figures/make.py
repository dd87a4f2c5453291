"""Draw all drawings of the lectures.

python lectures/figures/make.py
"""

from pathlib import Path

import lecture_00
import lecture_01
import lecture_02
import lecture_03
import lecture_04
import lecture_05
import lecture_06
import lecture_07
import lecture_08
import lecture_09
import lecture_10
import lecture_11
import lecture_12
import lecture_13

FOLDER = Path(__file__).parent
DRAWINGS = [
    lecture_00.course_map,
    lecture_00.backward_graph,
    lecture_01.unrolled,
    lecture_01.patterns,
    lecture_01.lstm,
    lecture_01.gru,
    lecture_02.through_one_vector,
    lecture_02.with_attention,
    lecture_02.two_layers,
    lecture_03.sliding_filter,
    lecture_03.receptive_field,
    lecture_03.filter_or_attention,
    lecture_03.index_sums,
    lecture_04.three_roles,
    lecture_04.one_head,
    lecture_04.multihead,
    lecture_05.two_views,
    lecture_05.shuffled,
    lecture_05.deep_sets,
    lecture_05.set_transformer,
    lecture_06.transformer,
    lecture_06.shapes,
    lecture_06.norm_places,
    lecture_06.word_by_word,
    lecture_06.positions_added,
    lecture_07.masks,
    lecture_07.gpt,
    lecture_07.bert,
    lecture_07.cache,
    lecture_07.encoder_and_mask,
    lecture_07.prompting,
    lecture_07.pretraining,
    lecture_08.particle_transformer,
    lecture_08.class_attention,
    lecture_08.molecule_attention,
    lecture_08.astromer,
    lecture_09.who_hears_whom,
    lecture_09.messages,
    lecture_09.graph_block,
    lecture_09.gcn_gat,
    lecture_10.edge_conv,
    lecture_10.dynamic_graph,
    lecture_10.dgcnn,
    lecture_10.particlenet,
    lecture_11.gravnet,
    lecture_12.condensation_point,
    lecture_12.potentials,
    lecture_12.hits_to_objects,
    lecture_13.blockwise,
    lecture_13.lanes_and_threads,
    lecture_13.stages,
]


if __name__ == "__main__":
    for draw in DRAWINGS:
        drawing = draw()
        drawing.save(FOLDER / f"{drawing.name}.svg")
