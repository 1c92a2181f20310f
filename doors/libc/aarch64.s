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
.balign 4
.globl \name
.hidden \name
.type \name,@function
\name:
    adrp x17, .Lplace_\name
    add x17, x17, :lo12:.Lplace_\name
    ldr x16, [x17]
    cbz x16, 1f
    br x16
1:  b polycast_libc_look_up
.size \name,.-\name
.popsection
.endm

/* x17: the place of the address, and the name behind it. Everything that may be an argument is kept. */
.pushsection .text.libc.look_up,"ax",@progbits
.balign 4
.globl polycast_libc_look_up
.hidden polycast_libc_look_up
.type polycast_libc_look_up,@function
polycast_libc_look_up:
    stp x29, x30, [sp, #-224]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x17, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    add x0, x17, #8
    bl polycast_libc_find
    mov x16, x0
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x8, x17, [sp, #80]
    str x16, [x17]
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #224
    br x16
.size polycast_libc_look_up,.-polycast_libc_look_up
.popsection
