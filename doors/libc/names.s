/*
 * The functions of libc that our objects call by way of their own lookup (libc.S), so that a program which exports one of these names is not
 * called instead. Not in this list, and found by the dynamic linker as ever:
 *
 *   malloc, calloc, realloc, free, posix_memalign     programs replace them on purpose, and libc hands out memory of theirs
 *   memcpy, memmove, memset, memcmp, bcmp, strlen     compilers call them in any object; C reserves the names (C17, 7.1.3)
 *   pthread_…, and what begins with an underscore     reserved, too; tools replace pthread_… on purpose
 *   dlopen, dlsym, dlerror                            the lookup itself, which would take away what dlerror is to say
 *   environ, stderr                                   variables: a program's copy is the one that counts
 *
 * A test compares what the objects import with this list.
 */
libc abort
libc atoi
libc bind
libc clock_gettime
libc clock_nanosleep
libc clone
libc close
libc closedir
libc connect
libc dirfd
libc dl_iterate_phdr
libc dladdr
libc dladdr1
libc dlclose
libc fclose
libc fcntl
libc fgets
libc fopen
libc fprintf
libc freeaddrinfo
libc freeifaddrs
libc fstat
libc fstat64
libc ftruncate
libc fwrite
libc gai_strerror
libc getaddrinfo
libc getauxval
libc getcwd
libc getenv
libc geteuid
libc gethostname
libc getifaddrs
libc getpid
libc getppid
libc getrandom
libc getrlimit
libc getsockopt
libc gettid
libc gnu_get_libc_version
libc if_nametoindex
libc ioctl
libc lseek64
libc lstat64
libc madvise
libc memfd_create
libc mkdir
libc mmap
libc mmap64
libc mprotect
libc munmap
libc open
libc open64
libc opendir
libc pause
libc poll
libc posix_fallocate
libc process_vm_readv
libc raise
libc read
libc readdir64
libc readlink
libc realpath
libc recv
libc recvmmsg
libc recvmsg
libc rename
libc sched_getaffinity
libc sched_yield
libc send
libc sendmmsg
libc sendmsg
libc setenv
libc setsockopt
libc sigaction
libc sigaltstack
libc sigemptyset
libc sigfillset
libc snprintf
libc socket
libc stat64
libc statx
libc strcasecmp
libc strchr
libc strcmp
libc strcpy
libc strdup
libc strncmp
libc strncpy
libc strrchr
libc strstr
libc syscall
libc sysconf
libc unlink
libc write
libc writev
