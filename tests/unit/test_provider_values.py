"""Pulumi's wire values: numbers, nulls, secrets."""

from google.protobuf import struct_pb2

from providers.grpc.servicer import SECRET, SIGNATURE, to_python, to_struct


def struct(values: dict) -> struct_pb2.Struct:
    wire = struct_pb2.Struct()
    wire.update(values)
    return wire


def test_whole_doubles_become_ints_wherever_they_stand():
    found = to_python(struct({"nodes": 2.0, "disks": [2000.0], "deep": {"port": 22.0}, "price": 4.5}))
    assert found == {"nodes": 2, "disks": [2000], "deep": {"port": 22}, "price": 4.5}
    assert all(isinstance(value, int) for value in (found["nodes"], found["disks"][0], found["deep"]["port"]))


def test_nulls_are_left_out_in_both_directions_and_a_secret_loses_its_wrapping():
    assert to_python(struct({"a": None, "b": {"c": None}})) == {"b": {}}
    there_and_back = to_python(to_struct({"a": None, "b": {"c": None, "d": 1}, "e": ({"f": None},)}))
    assert there_and_back == {"b": {"d": 1}, "e": [{}]}
    assert to_python(struct({"word": {SIGNATURE: SECRET, "value": "x"}})) == {"word": "x"}
