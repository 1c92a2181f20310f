/* A function for each name in doors/libc/names.s, exported as -rdynamic does: it tells own_names.c who calls it, and goes on as libc's. */
.macro libc name
.data
.balign 8
.Lplace_\name:
    .quad 0
    .asciz "\name"
.text
.globl \name
.type \name,@function
\name:
    leaq .Lplace_\name(%rip), %r11
    jmp own_name_called
.size \name,.-\name
.endm

.text
own_name_called:
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
    movq %r11, %rdi
    movq 8(%rbp), %rsi
    call own_name
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

#include "names.s"
.section .note.GNU-stack, "", @progbits
