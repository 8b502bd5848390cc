package bench_test

import "encoding/json"

// byHand returns a function that decodes a document into a T and returns its text.
func byHand[T any](text func(*T) string) func([]byte) (string, error) {
	return func(doc []byte) (string, error) {
		var v T
		if err := json.Unmarshal(doc, &v); err != nil {
			return "", err
		}
		return text(&v), nil
	}
}

// The structs that a program would define for its needs: the text, the citations and the sources.

type urlCitation struct {
	Type  string `json:"type"`
	Start int    `json:"start_index"`
	End   int    `json:"end_index"`
	URL   string `json:"url"`
	Title string `json:"title"`
}

type responsesItem struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Content []struct {
		Type        string        `json:"type"`
		Text        string        `json:"text"`
		Annotations []urlCitation `json:"annotations"`
	} `json:"content"`
	Action struct {
		Query   string `json:"query"`
		Sources []struct {
			URL string `json:"url"`
		} `json:"sources"`
	} `json:"action"`
}

type responsesEvent struct {
	Type        string         `json:"type"`
	Sequence    int            `json:"sequence_number"`
	OutputIndex int            `json:"output_index"`
	Delta       string         `json:"delta"`
	Annotation  *urlCitation   `json:"annotation"`
	Item        *responsesItem `json:"item"`
	Response    *struct {
		ID     string          `json:"id"`
		Model  string          `json:"model"`
		Status string          `json:"status"`
		Output []responsesItem `json:"output"`
	} `json:"response"`
}

type responsesBody struct {
	ID     string          `json:"id"`
	Model  string          `json:"model"`
	Output []responsesItem `json:"output"`
}

func (r *responsesBody) text() string {
	text := ""
	for _, item := range r.Output {
		for _, part := range item.Content {
			text += part.Text
		}
	}
	return text
}

type anthropicBlock struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Citations []struct {
		Type      string `json:"type"`
		CitedText string `json:"cited_text"`
		URL       string `json:"url"`
		Title     string `json:"title"`
	} `json:"citations"`
	Content []struct {
		URL   string `json:"url"`
		Title string `json:"title"`
	} `json:"content"`
}

type anthropicEvent struct {
	Type  string          `json:"type"`
	Index int             `json:"index"`
	Block *anthropicBlock `json:"content_block"`
	Delta struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Citation *struct {
			Type      string `json:"type"`
			CitedText string `json:"cited_text"`
			URL       string `json:"url"`
			Title     string `json:"title"`
		} `json:"citation"`
	} `json:"delta"`
}

type anthropicBody struct {
	ID      string           `json:"id"`
	Model   string           `json:"model"`
	Content []anthropicBlock `json:"content"`
}

func (m *anthropicBody) text() string {
	text := ""
	for _, block := range m.Content {
		text += block.Text
	}
	return text
}

type geminiChunk struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"content"`
		FinishReason string `json:"finishReason"`
		Grounding    struct {
			Chunks []struct {
				Web struct {
					URI   string `json:"uri"`
					Title string `json:"title"`
				} `json:"web"`
			} `json:"groundingChunks"`
			Supports []struct {
				Segment struct {
					Start int    `json:"startIndex"`
					End   int    `json:"endIndex"`
					Text  string `json:"text"`
				} `json:"segment"`
				Indices []int `json:"groundingChunkIndices"`
			} `json:"groundingSupports"`
			Queries []string `json:"webSearchQueries"`
		} `json:"groundingMetadata"`
	} `json:"candidates"`
}

func (c *geminiChunk) text() string {
	text := ""
	for _, candidate := range c.Candidates {
		for _, part := range candidate.Content.Parts {
			text += part.Text
		}
	}
	return text
}

type interactionEvent struct {
	Index int    `json:"index"`
	Type  string `json:"event_type"`
	Delta struct {
		Type        string        `json:"type"`
		Text        string        `json:"text"`
		Annotations []urlCitation `json:"annotations"`
	} `json:"delta"`
	Interaction struct {
		ID    string `json:"id"`
		Model string `json:"model"`
	} `json:"interaction"`
}

type chatMessage struct {
	Role        string `json:"role"`
	Content     string `json:"content"`
	Annotations []struct {
		URL urlCitation `json:"url_citation"`
	} `json:"annotations"`
	Context struct {
		Citations []struct {
			Title   string `json:"title"`
			Content string `json:"content"`
			URL     string `json:"url"`
		} `json:"citations"`
	} `json:"context"`
}

type chatChunk struct {
	ID        string   `json:"id"`
	Model     string   `json:"model"`
	Citations []string `json:"citations"`
	Results   []struct {
		Title   string `json:"title"`
		URL     string `json:"url"`
		Date    string `json:"date"`
		Snippet string `json:"snippet"`
	} `json:"search_results"`
	Choices []struct {
		Index   int         `json:"index"`
		Delta   chatMessage `json:"delta"`
		Message chatMessage `json:"message"`
		Finish  string      `json:"finish_reason"`
	} `json:"choices"`
}

func (c *chatChunk) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content
}

// mistralChunk has content that is a string or a list.
type mistralChunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Delta struct {
			Content mistralContent `json:"content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
}

type mistralContent struct {
	text   string
	pieces []struct {
		Type       string   `json:"type"`
		Text       string   `json:"text"`
		References []string `json:"reference_ids"`
	}
}

// UnmarshalJSON accepts both.
func (c *mistralContent) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &c.text)
	}
	return json.Unmarshal(b, &c.pieces)
}

type conversationEvent struct {
	Type    string `json:"type"`
	ID      string `json:"conversation_id"`
	Model   string `json:"model"`
	Content conversationContent
}

type conversationContent struct {
	text      string
	reference struct {
		Type  string `json:"type"`
		Title string `json:"title"`
		URL   string `json:"url"`
	}
}

// UnmarshalJSON accepts a string or a chunk.
func (c *conversationContent) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &c.text)
	}
	return json.Unmarshal(b, &c.reference)
}

type cohereCitation struct {
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Text    string `json:"text"`
	Sources []struct {
		ID       string            `json:"id"`
		Document map[string]string `json:"document"`
	} `json:"sources"`
}

type cohere2Event struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta struct {
		Message struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
			Citation cohereCitation `json:"citations"`
		} `json:"message"`
		Finish string `json:"finish_reason"`
	} `json:"delta"`
}

type cohere2Body struct {
	ID      string `json:"id"`
	Message struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Citations []cohereCitation `json:"citations"`
	} `json:"message"`
}

func (b *cohere2Body) text() string {
	text := ""
	for _, block := range b.Message.Content {
		text += block.Text
	}
	return text
}

type cohere1Citation struct {
	Start     int      `json:"start"`
	End       int      `json:"end"`
	Text      string   `json:"text"`
	Documents []string `json:"document_ids"`
}

type cohere1Event struct {
	Type      string              `json:"event_type"`
	Text      string              `json:"text"`
	Documents []map[string]string `json:"documents"`
	Citations []cohere1Citation   `json:"citations"`
	Response  *struct {
		Text      string              `json:"text"`
		Documents []map[string]string `json:"documents"`
		Citations []cohere1Citation   `json:"citations"`
	} `json:"response"`
}

type converseEvent struct {
	Index int `json:"contentBlockIndex"`
	Delta struct {
		Text     string `json:"text"`
		Citation *struct {
			Title         string `json:"title"`
			SourceContent []struct {
				Text string `json:"text"`
			} `json:"sourceContent"`
			Location struct {
				Page struct {
					Document int `json:"documentIndex"`
					Start    int `json:"start"`
					End      int `json:"end"`
				} `json:"documentPage"`
			} `json:"location"`
		} `json:"citation"`
	} `json:"delta"`
	Stop string `json:"stopReason"`
}

type ragEvent struct {
	Text     string `json:"text"`
	Citation struct {
		Part struct {
			Text struct {
				Text string `json:"text"`
				Span struct {
					Start int `json:"start"`
					End   int `json:"end"`
				} `json:"span"`
			} `json:"textResponsePart"`
		} `json:"generatedResponsePart"`
		References []struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
			Location struct {
				S3 struct {
					URI string `json:"uri"`
				} `json:"s3Location"`
			} `json:"location"`
		} `json:"retrievedReferences"`
	} `json:"citation"`
}

type vertexChunk struct {
	Answer struct {
		State     string `json:"state"`
		Text      string `json:"answerText"`
		Citations []struct {
			Start   string `json:"startIndex"`
			End     string `json:"endIndex"`
			Sources []struct {
				Reference string `json:"referenceId"`
			} `json:"sources"`
		} `json:"citations"`
		References []struct {
			Chunk struct {
				Content  string `json:"content"`
				Metadata struct {
					URI   string `json:"uri"`
					Title string `json:"title"`
				} `json:"documentMetadata"`
			} `json:"chunkInfo"`
		} `json:"references"`
	} `json:"answer"`
}
