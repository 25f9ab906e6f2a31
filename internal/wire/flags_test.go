package wire

// FormFlags and NameFlags are the numbers above the flags, for tests outside of the package.
const (
	FormFlags Flags = (1<<formBits - 1) << formShift
	NameFlags Flags = (1<<nameBits - 1) << nameShift
)
