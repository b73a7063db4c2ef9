// Package quantity reads amounts in the notation of Kubernetes: 500m, 1.5, 2Gi,
// 1e3, and shares of a capacity as 10%.
//
// Values are exact, and are rounded once, when they are asked for in a unit:
// up, so that a reservation is never less than what was written. It is pure.
package quantity
