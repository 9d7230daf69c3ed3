package main

const (
	judge   = "internal/experiment/experiment.go"
	harms   = "stalls-little|stalls-much|later-little|later-much|nothing-little|nothing-much|stalls-late|later-late|small-site|big-stalls|big-later|big-nothing|half-later|half-nothing|none|within-margins"
	thrice  = "15. / 16, 1. / 2, 1. / 4" // the stakes
	nine    = "0.05, 0.15, 0.4"          // the means; nine bets in all
	margins = "Stall: 0.01, Startup: 0.01, Failure: 0.005"
	lengths = "Windows = [...]time.Duration{24 * time.Hour, 7 * 24 * time.Hour}"
)

// experiment is the judge of the comparison with the control group.
var experiment = suite{
	name: "experiment", folder: "internal/experiment", benchmark: "HarmElsewhere",
	figures: []figure{{"found-%", "found %", 1}, {"viewers", "viewers", 50}},
	rows: []row{
		{asItIs, harms, "", "", ""},
		{nothing + ": other dice, 1", harms, "internal/experiment/elsewhere_test.go", "1000*set+w, 5", "1000*set+w, 6"},
		{nothing + ": other dice, 2", harms, "internal/experiment/elsewhere_test.go", "1000*set+w, 5", "1000*set+w, 7"},
		bets("stakes without 15/16", "1. / 2, 1. / 4", nine),
		bets("stakes without 1/2", "15. / 16, 1. / 4", nine),
		bets("stakes without 1/4", "15. / 16, 1. / 2", nine),
		bets("stakes with 1/8", "15. / 16, 1. / 2, 1. / 4, 1. / 8", nine),
		bets("stakes with 1/8 and 1/16", "15. / 16, 1. / 2, 1. / 4, 1. / 8, 1. / 16", nine),
		bets("means without 0.05", thrice, "0.15, 0.4"),
		bets("means without 0.15", thrice, "0.05, 0.4"),
		bets("means without 0.4", thrice, "0.05, 0.15"),
		bets("means with 0", thrice, "0, 0.05, 0.15, 0.4"),
		bets("means with 0 for 0.05", thrice, "0, 0.15, 0.4"),
		bets("all twenty", "15. / 16, 1. / 2, 1. / 4, 1. / 8, 1. / 16", "0, 0.05, 0.15, 0.4"),
		{"margins: half", harms, judge, margins, "Stall: 0.005, Startup: 0.005, Failure: 0.0025"},
		{"margins: twice", harms, judge, margins, "Stall: 0.02, Startup: 0.02, Failure: 0.01"},
		{"margins: none", harms, judge, margins, "Stall: 0, Startup: 0, Failure: 0"},
		{"alpha 0.001: half", harms, judge, "Alpha = 0.001", "Alpha = 0.0005"},
		{"alpha 0.001: twice", harms, judge, "Alpha = 0.001", "Alpha = 0.002"},
		{"window of a week: off", harms, judge, lengths, "Windows = [...]time.Duration{24 * time.Hour}"},
		{"window of a day: off", harms, judge, lengths, "Windows = [...]time.Duration{7 * 24 * time.Hour}"},
		{"step of stalls 1 %: twice", harms, judge, "stallStep   = 1 ", "stallStep   = 2 "},
		{"step of startup 500 ms: half", harms, judge, "startupStep = 500", "startupStep = 250"},
		{"step of startup 500 ms: twice", harms, judge, "startupStep = 500", "startupStep = 1000"},
		{"ten levels: twenty", harms, judge, "Levels = 11", "Levels = 21"},
		{"ten levels: five", harms, judge, "Levels = 11", "Levels = 6"},
	},
}

// bets is a row with other bets.
func bets(name, stakes, means string) row {
	return row{
		name, harms, judge, "stakes = [...]float64{" + thrice + "}\n	means  = [...]float64{" + nine + "}",
		"stakes = [...]float64{" + stakes + "}\n	means  = [...]float64{" + means + "}",
	}
}

var suites = map[string]*suite{schedule.name: &schedule, streaming.name: &streaming, experiment.name: &experiment, broadcasts.name: &broadcasts, backgrounds.name: &backgrounds, foregrounds.name: &foregrounds}
