/* Ranks outnumber cores in the local stack. A rank of Open MPI that waits asks for messages without end, and its yield in between
   gives the core away for a moment only, so that four ranks which mostly wait keep two cores busy. Instead it sleeps for a moment. */
#include <sched.h>
#include <time.h>

int sched_yield(void)
{
    const struct timespec moment = {0, 100 * 1000};
    nanosleep(&moment, 0);
    return 0;
}
