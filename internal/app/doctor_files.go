package app

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// openFiles is how many files the tracker may have open, as its admin port says, and which process that is. Without an answer it is this
// process: a shell often has another limit than the tracker's unit.
func openFiles(ctx context.Context, admin string) (n uint64, of string) {
	own, _ := maxFiles()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return own, "this process"
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return own, "this process"
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(response.Body, 8<<20))
	for response.StatusCode == http.StatusOK && lines.Scan() {
		if text, is := strings.CutPrefix(lines.Text(), "process_max_fds "); is {
			if limit, err := strconv.ParseFloat(text, 64); err == nil && limit >= 1 && limit < 1<<63 {
				return uint64(limit), "the tracker"
			}
		}
	}
	return own, "this process"
}
