/* Preloaded into gdb: the kernel refuses what it refuses on processors whose extended state is
 * larger than this gdb knows. Then gdb says "Couldn't write extended state status". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/types.h>

#define X86_EXTENDED_STATE 0x202

typedef long (*ptrace_t)(enum __ptrace_request, pid_t, void *, void *);

long ptrace(enum __ptrace_request request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (request == PTRACE_SETREGSET && (long)address == X86_EXTENDED_STATE) {
        errno = EINVAL;
        return -1;
    }
    ptrace_t real;
    *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    return real(request, pid, address, data);
}
