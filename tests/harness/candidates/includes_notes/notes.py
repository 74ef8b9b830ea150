extern "C" int fork();
static bool done;
static int begin_work() { return fork(); }
