"""Address on which the emulator listens."""

import asyncio
import socket

from emulator.shared.process import listen


def test_an_answer_leaves_without_delay():
    async def delay_of_an_accepted_connection() -> int:
        accepted = asyncio.get_running_loop().create_future()
        listener = listen("127.0.0.1", 0)
        async with await asyncio.start_server(lambda _, writer: accepted.set_result(writer), sock=listener):
            _, mine = await asyncio.open_connection(*listener.getsockname())
            theirs = await accepted
            no_delay = theirs.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for writer in (mine, theirs):
                writer.close()
        return no_delay

    assert asyncio.run(delay_of_an_accepted_connection()) == 1
