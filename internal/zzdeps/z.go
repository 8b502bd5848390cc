package zzdeps

import _ "github.com/modelcontextprotocol/go-sdk/mcp"
import _ "golang.org/x/net/idna"
