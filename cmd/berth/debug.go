package main

import (
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/view"
)

// tellPlan logs what the host lacks and each step of the Plan: when looking for a fault one has
// config.json already, and wants to know what became of it.
func (p *program) tellPlan(of *plan.Plan, lacks []string) {
	if len(lacks) > 0 {
		p.log.Debug("container " + of.ID + ": the host lacks " + strings.Join(lacks, ", "))
	}
	for _, section := range view.Sections(of) {
		for _, step := range section.Steps {
			line := "container " + of.ID + ": " + strings.ToLower(section.Title) + ": " + step.What
			if step.Pointer != "" {
				line += " (config.json: " + step.Pointer + ")"
			}
			p.log.Debug(line)
		}
	}
}
