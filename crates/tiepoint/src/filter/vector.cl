// Four neighbours in one access.
#define VECTOR(type) VECTOR_OF(type)
#define VECTOR_OF(type) type##x4
