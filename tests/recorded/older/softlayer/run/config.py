from __future__ import absolute_import, division, print_function

import tensorflow as tf
from open_seq2seq.data.text2text.text2text import ParallelTextDataLayer, SpecialTextTokens
from open_seq2seq.data.text2text.tokenizer import EOS_ID
from open_seq2seq.decoders import TransformerDecoder
from open_seq2seq.encoders import TransformerEncoder
from open_seq2seq.losses import PaddedCrossEntropyLossWithSmoothing
from open_seq2seq.models import Text2Text
from open_seq2seq.optimizers.lr_policies import transformer_policy

base_model = Text2Text
data_root = '@DISK@/debian_en_de/'

base_params = {
    "use_horovod": True,
    "num_gpus": 1,
    "batch_size_per_gpu": 16,
    "max_steps": 300,
    "save_summaries_steps": 10,
    "print_loss_steps": 10,
    "print_samples_steps": 100,
    "eval_steps": 100,
    "save_checkpoint_steps": 100,
    "logdir": '@DISK@/runs/@RUN@/logdir',
    "dtype": tf.float32,
    "optimizer": tf.contrib.opt.LazyAdamOptimizer,
    "optimizer_params": {"beta1": 0.9, "beta2": 0.997, "epsilon": 1e-09},
    "lr_policy": transformer_policy,
    "lr_policy_params": {
        "learning_rate": 0.5,
        "warmup_steps": 100,
        "d_model": 64,
    },
    "encoder": TransformerEncoder,
    "encoder_params": {
        "encoder_layers": 1,
        "hidden_size": 64,
        "num_heads": 4,
        "filter_size": 256,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_postprocess_dropout": 0.1,
        "pad_embeddings_2_eight": True,
        "remove_padding": True,
    },
    "decoder": TransformerDecoder,
    "decoder_params": {
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_heads": 4,
        "filter_size": 256,
        "attention_dropout": 0.1,
        "relu_dropout": 0.1,
        "layer_postprocess_dropout": 0.1,
        "beam_size": 4,
        "alpha": 0.6,
        "extra_decode_length": 50,
        "EOS_ID": EOS_ID,
        "GO_SYMBOL": SpecialTextTokens.S_ID.value,
        "END_SYMBOL": SpecialTextTokens.EOS_ID.value,
        "PAD_SYMBOL": SpecialTextTokens.PAD_ID.value,
    },
    "loss": PaddedCrossEntropyLossWithSmoothing,
    "loss_params": {"label_smoothing": 0.1},
}

train_params = {
    "data_layer": ParallelTextDataLayer,
    "data_layer_params": {
        "pad_vocab_to_eight": True,
        "src_vocab_file": data_root + 'm_common.vocab',
        "tgt_vocab_file": data_root + 'm_common.vocab',
        "source_file": data_root + 'train.en.tok',
        "target_file": data_root + 'train.de.tok',
        "delimiter": " ",
        "shuffle": True,
        "shuffle_buffer_size": 25000,
        "repeat": True,
        "map_parallel_calls": 2,
        "max_length": 32,
    },
}

# With more than one rank an evaluation that does not repeat its file ends the run after one step, with exit code 0.
eval_params = {
    "batch_size_per_gpu": 16,
    "data_layer": ParallelTextDataLayer,
    "data_layer_params": {
        "src_vocab_file": data_root + 'm_common.vocab',
        "tgt_vocab_file": data_root + 'm_common.vocab',
        "source_file": data_root + 'eval.en.tok',
        "target_file": data_root + 'eval.de.tok',
        "delimiter": " ",
        "shuffle": False,
        "repeat": True,
        "max_length": 32,
    },
}
