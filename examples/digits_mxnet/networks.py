"""Small networks for small images."""

import mxnet as mx


def mlp(classes):
    """Return two hidden layers of 64."""
    layer = mx.sym.Flatten(mx.sym.Variable("data"))
    for number in (1, 2):
        layer = mx.sym.FullyConnected(layer, num_hidden=64, name=f"fc{number}")
        layer = mx.sym.Activation(layer, act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(layer, num_hidden=classes, name="fc3"), name="softmax")


def lenet(classes):
    """Return two convolutions and a hidden layer."""
    layer = mx.sym.Variable("data")
    for number, filters in ((1, 16), (2, 32)):
        layer = mx.sym.Convolution(layer, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{number}")
        layer = mx.sym.Activation(layer, act_type="relu")
        layer = mx.sym.Pooling(layer, pool_type="max", kernel=(2, 2), stride=(2, 2))
    layer = mx.sym.FullyConnected(mx.sym.Flatten(layer), num_hidden=64, name="fc1")
    layer = mx.sym.Activation(layer, act_type="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(layer, num_hidden=classes, name="fc2"), name="softmax")


NETWORKS = {"mlp": mlp, "lenet": lenet}
