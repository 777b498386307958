// A program that does nothing: the headers are compiled for it, and all tests that are programs take them
// over.
int main() { return 0; }
