/* What stands in front of the driver's functions that enqueue something (operations.h).
 *
 * There are 256 entries of 16 bytes. Each has a number, and goes on to the same code. That asks
 * klap_shim_operation_begins which function the number means, calls it with all arguments of the program, and
 * then calls klap_shim_operation_ends. Arguments in memory are copied: eight words, more than any of the functions
 * has. None of the functions has arguments in floating-point registers.
 *
 * A thread may be cancelled inside the driver. The call frame information lets its stack be unwound from here.
 */

        .text
        .hidden klap_shim_operations
        .globl  klap_shim_operations

#if defined(__x86_64__)

        .type   klap_shim_operation, @function
        .p2align 4
klap_shim_operation:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $64, %rsp
        movq    %rdi, (%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movl    %eax, %edi
        movq    %rsp, %rsi
        leaq    16(%rbp), %rdx
        call    klap_shim_operation_begins
        movq    (%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        pushq   72(%rbp)
        pushq   64(%rbp)
        pushq   56(%rbp)
        pushq   48(%rbp)
        pushq   40(%rbp)
        pushq   32(%rbp)
        pushq   24(%rbp)
        pushq   16(%rbp)
        call    *%rax
        movq    %rax, -8(%rbp)
        call    klap_shim_operation_ends
        movq    -8(%rbp), %rax
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   klap_shim_operation, .-klap_shim_operation

        .type   klap_shim_operations, @function
        .p2align 4
klap_shim_operations:
        .cfi_startproc
        .set    number, 0
        .rept   256
        endbr64
        movl    $number, %eax
        jmp     klap_shim_operation
        .p2align 4
        .set    number, number + 1
        .endr
        .cfi_endproc
        .size   klap_shim_operations, .-klap_shim_operations

#elif defined(__aarch64__)

        .type   klap_shim_operation, %function
        .p2align 4
klap_shim_operation:
        .cfi_startproc
        stp     x29, x30, [sp, #-96]!
        .cfi_def_cfa_offset 96
        .cfi_offset 29, -96
        .cfi_offset 30, -88
        mov     x29, sp
        .cfi_def_cfa_register 29
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        mov     w0, w16
        add     x1, sp, #16
        add     x2, sp, #96
        bl      klap_shim_operation_begins
        mov     x16, x0
        sub     sp, sp, #64
        ldp     x0, x1, [x29, #96]
        stp     x0, x1, [sp]
        ldp     x0, x1, [x29, #112]
        stp     x0, x1, [sp, #16]
        ldp     x0, x1, [x29, #128]
        stp     x0, x1, [sp, #32]
        ldp     x0, x1, [x29, #144]
        stp     x0, x1, [sp, #48]
        ldp     x0, x1, [x29, #16]
        ldp     x2, x3, [x29, #32]
        ldp     x4, x5, [x29, #48]
        ldp     x6, x7, [x29, #64]
        blr     x16
        add     sp, sp, #64
        str     x0, [sp, #80]
        bl      klap_shim_operation_ends
        ldr     x0, [sp, #80]
        .cfi_def_cfa_register 31
        ldp     x29, x30, [sp], #96
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        ret
        .cfi_endproc
        .size   klap_shim_operation, .-klap_shim_operation

        .type   klap_shim_operations, %function
        .p2align 4
klap_shim_operations:
        .cfi_startproc
        .set    number, 0
        .rept   256
        hint    #34                     /* bti c */
        mov     w16, #number
        b       klap_shim_operation
        .p2align 4
        .set    number, number + 1
        .endr
        .cfi_endproc
        .size   klap_shim_operations, .-klap_shim_operations

#else
#error "no entries for this processor"
#endif

        .section .note.GNU-stack, "", %progbits
