package wire

import "strings"

// The members of each format that look like sources and are read, or hold what tools were given and returned. What else
// looks like sources is reported: see [out.unread].
var (
	anthropicReads = readPaths(below(`content. message.content. content_block. delta.`,
		`citations citation content input source caller`))
	converseReads = readPaths(below(`output.message.content. contentblockdelta.delta. contentblockstart.start.
		delta. start.`,
		`citationscontent citation tooluse toolresult reasoningcontent document image`) + ` trace metadata.trace`)
	bedrockRAGReads = readPaths(`citation citations chunk.attribution attribution retrievedreferences
		trace returncontrol`)
	interactionsReads = readPaths(below(`steps. steps.content. outputs. interaction.steps. interaction.steps.content.
		interaction.outputs. step. step.content. content. delta. delta.content.`, `annotations result arguments`))
	conversationsReads = readPaths(`outputs.content/ content/ outputs.info info outputs.arguments arguments`)
	responsesReads     = readPaths(below(`output. response.output. item. part. content. response.output.content.
		output.content. item.content.`, `annotations action.sources results searchresults output outputs arguments
		tools input queries`) +
		` annotation response.tools response.instructions response.input response.prompt response.error response.usage`)
	vertexReads = readPaths(below(`- answer. reply.`, `citations references groundingsupports steps
		queryunderstandinginfo`) +
		` results searchresults summary reply.summary session conversation`)
	generateReads = readPaths(below(`candidates. response.candidates.`, `citationmetadata groundingmetadata
		urlcontextmetadata
		content.parts.functioncall content.parts.functionresponse content.parts.inlinedata
		content.parts.toolcall content.parts.toolresponse content.parts.executablecode safetyratings logprobsresult`) +
		` promptfeedback`)
	cohere2Reads = readPaths(below(`message. delta.message.`, `citations toolcalls`))
	cohere1Reads = readPaths(below(`- response.`, `citations documents searchresults searchqueries chathistory toolcalls
		toolresults`))
	adkReads = readPaths(`groundingmetadata citationmetadata actions content.parts.functioncall
		content.parts.functionresponse content.parts.inlinedata`)
	liveReads = readPaths(`servercontent.groundingmetadata servercontent.urlcontextmetadata toolcall
		servercontent.modelturn.parts.functioncall servercontent.modelturn.parts.inlinedata`)
	cortexReads = readPaths(below(`- content.`, `annotation annotations tooluse toolresult
		toolresults table chart json`) +
		` input`)
	difyReads = readPaths(`metadata.retrieverresources metadata.annotationreply data thought observation toolinput`)
	ociReads  = readPaths(below(`- chatresponse.`, `citations documents searchqueries chathistory toolcalls
		message.citations message.toolcalls`))
)

// below returns each of the names below each of the prefixes; the prefix - is the root.
func below(prefixes, names string) string {
	var paths strings.Builder
	for prefix := range strings.FieldsSeq(prefixes) {
		for name := range strings.FieldsSeq(names) {
			paths.WriteString(" " + strings.TrimPrefix(prefix, "-") + strings.ReplaceAll(name, "_", ""))
		}
	}
	return strings.ReplaceAll(paths.String(), "_", "")
}
