package trail_test

import (
	"context"
	"fmt"
	"os"

	"github.com/ibidhq/ibid/trail"
)

// The display of a run that a page shows.
func Example() {
	run, err := trail.Read([]byte(`{
	  "original_question": "What kinds of machine learning are there?",
	  "final_answer": "There are three main categories [ml_guide_ch1]. Many people like them.",
	  "reasoning_steps": [
	    {"step_number": 1, "question": "What is machine learning?", "source_attributions": [
	      {"document_id": "ml_guide_ch1", "document_title": "Machine Learning Guide", "relevance_score": 0.92,
	       "excerpt": "Machine learning algorithms fall into three main categories.", "retrieval_rank": 1},
	      {"document_id": "ai_intro", "relevance_score": 0.6}]},
	    {"step_number": 2, "question": "What is new?", "context_used": ["id:dl_paper_2023 Recent advances…"]}
	  ]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	s := run.Summary(nil)
	for _, p := range s.Primary {
		fmt.Printf("%.2f (%s) %s\n", *p.Relevance, p.Origin, p.DocumentID)
	}
	for _, u := range s.Steps {
		fmt.Println("step", u.Number, "used", u.Documents)
	}
	// Output:
	// 0.92 (retriever) ml_guide_ch1
	// 1.00 (rank) dl_paper_2023
	// step 1 used [ml_guide_ch1 ai_intro]
	// step 2 used [dl_paper_2023]
}

// Which steps and passages each sentence of the answer rests on.
func ExampleTrail_Link() {
	run := &trail.Trail{
		Answer: "Grey herons nest in colonies in tall trees. Their chicks are blue [atlas]. They dislike rain.",
		Steps: []trail.Step{
			{Number: 1, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "book", Content: "Grey herons nest in colonies in tall trees near water."}})},
			{Number: 2, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "atlas", Content: "Plate 7: a chick."}})},
		},
	}
	links, err := run.Link(context.Background(), nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range links.Sentences {
		if s.NoSources() {
			fmt.Printf("%q: no sources used\n", s.Text)
		}
		for _, p := range s.Passages {
			fmt.Printf("%q: %s, steps %v, %s\n", s.Text, p.DocumentID, p.Steps, p.Reason)
		}
	}
	fmt.Printf("%.2f without sources\n", *links.Uncited)
	// Output:
	// "Grey herons nest in colonies in tall trees.": book, steps [1], inferred
	// "Their chicks are blue [atlas].": atlas, steps [2], marker
	// "They dislike rain.": no sources used
	// 0.33 without sources
}

// A program records its run while it happens.
func ExampleRecorder() {
	recorder := trail.NewRecorder("run-7", &trail.RecorderOptions{Question: "How fast does kelp grow?"})
	_ = recorder.Do(context.Background(), &trail.StepOptions{Tool: "search"}, func(_ context.Context, step *trail.Active) error {
		step.Retrieve(trail.Result{DocumentID: "kelp", Content: "Giant kelp grows 50 cm a day."}, trail.Result{DocumentID: "otters"})
		step.Use(trail.Source{DocumentID: "kelp"})
		step.Answer("50 cm a day.")
		return nil
	})
	run := recorder.Finish("Kelp grows 50 cm a day.")
	for _, u := range run.Summary(nil).Steps {
		fmt.Println("step", u.Number, "used", u.Documents, "of", u.Retrieved)
	}
	// Output:
	// step 1 used [kelp] of 2
}

// A question that is decomposed, with functions in place of a model and a search.
func ExampleReason() {
	r := trail.Reason{
		Decompose: func(context.Context, string) ([]trail.Question, error) {
			return []trail.Question{{Text: "height", After: []int{}}, {Text: "age", After: []int{}}}, nil
		},
		Retrieve: func(_ context.Context, question string) ([]trail.Result, error) {
			return []trail.Result{{DocumentID: question + ".txt", Content: "The " + question + " of the tower is known."}}, nil
		},
		Answer: func(_ context.Context, in *trail.Input) (*trail.Output, error) {
			return &trail.Output{Text: in.Results[0].Content}, nil
		},
		Synthesise: func(_ context.Context, _ string, steps []trail.Step) (*trail.Output, error) {
			return &trail.Output{Text: steps[0].Answer + " " + steps[1].Answer}, nil
		},
	}
	run, err := r.Run(context.Background(), "What is known of the tower?")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Println(run.Answer)
	for _, u := range run.Summary(nil).Steps {
		fmt.Println("step", u.Number, "used", u.Documents)
	}
	// Output:
	// The height of the tower is known. The age of the tower is known.
	// step 1 used [height.txt]
	// step 2 used [age.txt]
}
