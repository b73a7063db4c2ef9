package program

const elfMachine = 62 // EM_X86_64
