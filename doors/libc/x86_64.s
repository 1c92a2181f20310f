/*
 * libc NAME: a hidden NAME, which this object's calls are linked to. The first one looks for libc's; it and all others jump there with what they were
 * called with.
 */
.macro libc name
.pushsection .data.libc.\name,"aw",@progbits
.balign 8
.Lplace_\name:
    .quad 0
    .asciz "\name"
.popsection
.pushsection .text.libc.\name,"ax",@progbits
.globl \name
.hidden \name
.type \name,@function
\name:
    movq .Lplace_\name(%rip), %r11
    testq %r11, %r11
    je 1f
    jmpq *%r11
1:  leaq .Lplace_\name(%rip), %r11
    jmp polycast_libc_look_up
.size \name,.-\name
.popsection
.endm

/* %r11: the place of the address, and the name behind it. Everything that may be an argument is kept. */
.pushsection .text.libc.look_up,"ax",@progbits
.globl polycast_libc_look_up
.hidden polycast_libc_look_up
.type polycast_libc_look_up,@function
polycast_libc_look_up:
    pushq %rbp
    movq %rsp, %rbp
    pushq %r11
    pushq %rax
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    subq $128, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    leaq 8(%r11), %rdi
    call polycast_libc_find
    movq -8(%rbp), %r11
    movq %rax, (%r11)
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    movq -16(%rbp), %rax
    movq -24(%rbp), %rdi
    movq -32(%rbp), %rsi
    movq -40(%rbp), %rdx
    movq -48(%rbp), %rcx
    movq -56(%rbp), %r8
    movq -64(%rbp), %r9
    leave
    jmpq *%r11
.size polycast_libc_look_up,.-polycast_libc_look_up
.popsection
