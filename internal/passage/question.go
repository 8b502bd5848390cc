package passage

import (
	"strings"

	"github.com/ibidhq/ibid/internal/text"
)

// asked matches the label of a question in a prompt; answered that of the place of its answer.
var (
	asked = text.Pattern(`(?im)^[\s#*>-]*(?:(?:the |user(?:'s)? |my |current |actual )*` +
		`(?:question|query|message|request|prompt|input)|frage|anfrage|pregunta|consulta|domanda|pergunta|vraag|` +
		`问题|用户问题|質問|질문|вопрос)` +
		`(?: (?:is|der nutzerin|des nutzers))?\**\s*[:：]\**[ \t]*`)
	answered = text.Pattern(`(?im)^[\s#*>-]*(?:(?:your |helpful |final |the )*(?:answer|response|reply)|` +
		`antwort|respuesta|réponse|risposta|resposta|antwoord|回答|答案|답변|ответ)\**\s*[:：]`)
)

// Question returns the question of a prompt that also has passages and instructions, as programs write them: what
// stands behind the last label such as "Question:", or else the last paragraph outside them. A text without passages is
// returned as it is.
func Question(text string) string {
	if len(text) > maxBytes {
		return text
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	list, outside := (&promptReader{}).read(text)
	if len(list) == 0 {
		return text
	}
	rest := strings.TrimSpace(outside)
	all := asked().FindAllStringIndex(rest, -1)
	if len(all) > 0 {
		rest = rest[all[len(all)-1][1]:]
	}
	if at := answered().FindStringIndex(rest); at != nil {
		rest = rest[:at[0]]
	}
	paragraphs := blank.Split(strings.TrimSpace(rest), -1)
	question := paragraphs[len(paragraphs)-1]
	if len(all) > 0 {
		question = paragraphs[0]
	}
	if question = strings.TrimSpace(question); question == "" {
		return text
	}
	return question
}
