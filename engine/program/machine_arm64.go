package program

const elfMachine = 183 // EM_AARCH64
