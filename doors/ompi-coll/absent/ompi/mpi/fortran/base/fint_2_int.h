/* Debian's package has headers that include this one, but not this one. What it defines is used in functions that nobody here calls. */
#ifndef POLYCAST_ABSENT_FINT_2_INT_H
#define POLYCAST_ABSENT_FINT_2_INT_H

#define OMPI_INT_2_FINT(number) (number)
#define OMPI_FINT_2_INT(number) (number)

#endif
