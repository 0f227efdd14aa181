"""Reading archives that may come from anywhere."""

from __future__ import annotations

import bz2
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from recorded_play import archive, member

from efhorizon.errors import StoreError
from efhorizon.io.tar_reader import Limits, archived_files

LIMITS = Limits(members=20, member_bytes=5000, total_bytes=20_000)


def files(path: Path, content: bytes, limits: Limits = LIMITS) -> dict[str, bytes]:
    path.write_bytes(bz2.compress(content))
    return dict(archived_files(path, "an archive", limits))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_the_files_of_every_form_of_tar(tmp_path: Path, form: int) -> None:
    long = "folder/" + "n" * 90 + "/" + "m" * 60 + ".png"
    expected = {"folder/a.png": b"one", long: b"x" * 600, "folder/empty": b"", "b": bytes(512)}
    members = [member("folder", kind=tarfile.DIRTYPE), *(member(name, content) for name, content in expected.items())]
    assert files(tmp_path / "a", archive(members, form)) == expected
    members.append(member("./folder/é.png", b"two"))
    assert files(tmp_path / "a", archive(members, form))["folder/é.png"] == b"two"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (member("../a.png", b"x"), "outside the folder"),
        (member("folder/../../a.png", b"x"), "outside the folder"),
        (member("/tmp/a.png", b"x"), "outside the folder"),
        (member("..\\a.png", b"x"), "outside the folder"),
        (member("a.png", kind=tarfile.SYMTYPE, link="/etc/passwd"), "is a link"),
        (member("a.png", kind=tarfile.LNKTYPE, link="b.png"), "is a link"),
        (member("a.png", kind=tarfile.CHRTYPE), "is a device"),
        (member("a.png", kind=tarfile.BLKTYPE), "is a device"),
        (member("a.png", kind=tarfile.FIFOTYPE), "is a pipe"),
        (member("a.png", bytes(5001)), "5,001 bytes"),
    ],
)
@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_members_that_are_refused(tmp_path: Path, bad: tuple[tarfile.TarInfo, bytes], reason: str, form: int) -> None:
    with pytest.raises(StoreError, match=reason) as error:
        files(tmp_path / "a", archive([member("good", b"x"), bad], form))
    assert repr(bad[0].name) in str(error.value)
    assert str(tmp_path / "a") in str(error.value)


def test_limits(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="more than 20 members"):
        files(tmp_path / "a", archive([member(str(number)) for number in range(21)]))
    with pytest.raises(StoreError, match="more than 20,000 bytes"):
        files(tmp_path / "a", archive([member(str(number), bytes(4000)) for number in range(6)]))
    with pytest.raises(StoreError, match="follows the end"):
        files(tmp_path / "a", archive([member("a")]) + bytes(2 << 20))
    with pytest.raises(StoreError, match="follows the end"):
        files(tmp_path / "a", archive([member("a")]) + b"more")


def test_a_bomb_takes_no_memory(tmp_path: Path) -> None:
    """50 MB of zeros as the extended header of a member, as its long name, and as its content."""
    info = tarfile.TarInfo("a.png")
    info.size = 50 << 20
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.REGTYPE):
        info.type = kind
        compressor = bz2.BZ2Compressor()
        with (tmp_path / "a").open("wb") as file:
            file.write(compressor.compress(info.tobuf()))
            for _ in range(5):
                file.write(compressor.compress(bytes(10 << 20)))
            file.write(compressor.flush())
        assert (tmp_path / "a").stat().st_size < 10_000
        tracemalloc.start()
        with pytest.raises(StoreError, match="52,428,800 bytes"):
            list(archived_files(tmp_path / "a", "an archive", LIMITS))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
        tracemalloc.stop()


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    plain = archive([member("a", bytes(range(256)) * 4), member("b", b"y" * 700)])
    assert set(files(path, plain)) == {"a", "b"}
    for length in (0, 100, 512, 1000, 2048, 2600, 3072):
        with pytest.raises(StoreError, match=r"cut short"):
            files(path, plain[:length])
    broken = bytearray(plain)
    broken[1536 + 3] ^= 1  # the second header: tarfile would take it for the end
    with pytest.raises(StoreError, match="header of a member is damaged"):
        files(path, bytes(broken))
    packed = bz2.compress(plain)
    for length in range(1, len(packed), 7):
        path.write_bytes(packed[:length])
        with pytest.raises(StoreError, match="damaged or cut short"):
            list(archived_files(path, "an archive", LIMITS))
    path.write_bytes(b"not compressed")
    with pytest.raises(StoreError, match="damaged or cut short"):
        list(archived_files(path, "an archive", LIMITS))
