"""Package settings of the building machine that an image build takes over."""

import pytest

from microcluster.setup.errors import CommandFailed
from microcluster.setup.package_sources import (
    apt_options,
    apt_sources,
    ca_bundle,
    pip_configuration,
    proxies,
    tool_output,
)

STANZAS = """\
Types: deb
# an archived copy
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
URIs: http://mirror.example/security
Suites: bookworm-security
Components: main contrib

Types: deb
URIs: http://vendor.example/apt
Suites: nodistro
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""


def test_debian_sources_come_from_stanzas_and_lines_without_foreign_ones(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    assert apt_sources("bookworm", tmp_path) == (), "as on a host of another system"
    (tmp_path / "sources.list.d" / "debian.sources").write_text(STANZAS)
    (tmp_path / "sources.list").write_text(
        "deb [arch=amd64] http://other.example/debian bookworm main non-free\ndeb http://vendor.example/x bookworm stable\n"
    )
    assert apt_sources("bookworm", tmp_path) == (
        "deb http://other.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/security bookworm-security main",
    )


def test_only_the_apt_settings_that_reach_the_sources_are_taken():
    dump = 'APT::Install-Recommends "0";\nAcquire::Check-Valid-Until "false";\nAcquire::http::Proxy "";\n'
    assert apt_options(dump) == ('Acquire::Check-Valid-Until "false";',)


def test_pip_index_proxies_and_authorities_are_taken_over_and_the_environment_wins(tmp_path):
    listing = "global.index-url='https://file.example/simple'\n:env:.index-url='https://env.example/simple'\nglobal.cert='/x'\n"
    assert pip_configuration(listing) == "[global]\nindex-url = https://env.example/simple\n"
    address = "http://proxy.example:3128"
    assert proxies({"HTTPS_PROXY": address, "HOME": "/root"}) == {"https_proxy": address}
    bundle = tmp_path / "bundle.crt"
    bundle.write_text("-----BEGIN CERTIFICATE-----")
    assert ca_bundle({"PIP_CERT": str(tmp_path / "absent"), "SSL_CERT_FILE": str(bundle)}) == bundle


@pytest.mark.parametrize("user", ["me:pass-word", "a-token"])
def test_a_source_address_with_a_password_is_refused_without_showing_it(tmp_path, user):
    address = f"://{user}@file.example/"
    (tmp_path / "sources.list").write_text(f"deb http{address}debian bookworm main\n")
    for lend in (
        lambda: pip_configuration(f":env:.index-url='https{address}simple'\n"),
        lambda: pip_configuration(f"global.proxy='http{address}'\n"),
        lambda: apt_options(f'Acquire::http::Proxy "http{address}";\n'),
        lambda: apt_sources("bookworm", tmp_path),
    ):
        with pytest.raises(CommandFailed, match=r"//\(secret\)@file.example/.*would stay in a layer") as refused:
            lend()
        assert user not in str(refused.value)


def test_a_hanging_package_tool_is_named_and_a_missing_one_ignored():
    with pytest.raises(CommandFailed, match="`sleep 60` gave no answer within 0.1 s"):
        tool_output(("sleep", "60"), limit_s=0.1)
    assert tool_output(("no-such-package-tool", "dump")) == ""
