/* dlsym, stood in front of.
 *
 * The C library's dlsym looks at its return address: RTLD_NEXT means "after the library that called me" and
 * RTLD_DEFAULT searches the caller's own scope. A wrapper that calls it would answer every such question from
 * the shim's point of view, which has sent programs into endless recursion. So every look-up that is not for a
 * driver function goes on by a jump, with the caller's return address still in place, and costs two compares.
 * Names that begin with "cu" or "nv" are shown to klap_shim_lookup first: 0 means go on as well, klap_shim_absent
 * means answer 0, anything else is the answer.
 *
 * klap_shim_next_dlsym holds the C library's function; it is found on first use (see next_dlsym.cpp).
 */

#if defined(__x86_64__)

        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        testq   %rsi, %rsi
        je      .Lforward
        cmpb    $'c', (%rsi)
        jne     .Lnot_driver
        cmpb    $'u', 1(%rsi)
        jne     .Lforward
        jmp     .Lshow
.Lnot_driver:
        cmpb    $'n', (%rsi)
        jne     .Lforward
        cmpb    $'v', 1(%rsi)
        jne     .Lforward

.Lshow:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* keeps the stack aligned to 16 bytes at the call */
        .cfi_adjust_cfa_offset 8
        call    klap_shim_lookup
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        je      .Lforward
        leaq    klap_shim_absent(%rip), %rdx
        cmpq    %rdx, %rax
        jne     .Ldone
        xorl    %eax, %eax
.Ldone:
        ret

.Lforward:
        movq    klap_shim_next_dlsym(%rip), %rax
        testq   %rax, %rax
        je      .Lresolve
        jmp     *%rax

.Lresolve:
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    klap_shim_resolve_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        .cfi_endproc
        .size   dlsym, .-dlsym

#elif defined(__aarch64__)

        .text
        .globl  dlsym
        .type   dlsym, %function
        .p2align 4
dlsym:
        .cfi_startproc
        hint    #34                     /* bti c */
        cbz     x1, .Lforward
        ldrb    w9, [x1]
        cmp     w9, #'c'
        b.ne    .Lnot_driver
        ldrb    w9, [x1, #1]
        cmp     w9, #'u'
        b.ne    .Lforward
        b       .Lshow
.Lnot_driver:
        cmp     w9, #'n'
        b.ne    .Lforward
        ldrb    w9, [x1, #1]
        cmp     w9, #'v'
        b.ne    .Lforward

.Lshow:
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        stp     x0, x1, [sp, #16]
        mov     x29, sp
        bl      klap_shim_lookup
        mov     x9, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        cbz     x9, .Lforward
        adrp    x10, klap_shim_absent
        add     x10, x10, :lo12:klap_shim_absent
        cmp     x9, x10
        csel    x0, xzr, x9, eq
        ret

.Lforward:
        adrp    x16, klap_shim_next_dlsym
        ldr     x16, [x16, :lo12:klap_shim_next_dlsym]
        cbz     x16, .Lresolve
        br      x16

.Lresolve:
        stp     x29, x30, [sp, #-32]!
        .cfi_def_cfa_offset 32
        .cfi_offset 29, -32
        .cfi_offset 30, -24
        stp     x0, x1, [sp, #16]
        mov     x29, sp
        bl      klap_shim_resolve_dlsym
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #32
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        br      x16
        .cfi_endproc
        .size   dlsym, .-dlsym

#else
#error "no dlsym trampoline for this processor"
#endif

        .section .note.GNU-stack, "", %progbits
