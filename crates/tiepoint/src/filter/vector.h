// The types of four or two neighbours that are read in one access.
#define VECTOR(type) VECTOR_OF(type)
#define VECTOR_OF(type) type##x4
#define PAIR(type) PAIR_OF(type)
#define PAIR_OF(type) type##x2
