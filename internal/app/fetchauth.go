package app

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/leeway-video/leeway/internal/originhttp"
	"github.com/leeway-video/leeway/internal/site"
)

// maxAuthFile bounds the files of fetch_auth, bytes.
const maxAuthFile = 64 << 10

// fetchAuth reads what a site's origin asks of seeds. Errors begin with the key that is wrong and hold nothing of the files.
func fetchAuth(c site.FetchAuth) (auth originhttp.Auth, err error) {
	if c.HeadersFile != "" {
		text, err := readSmall(c.HeadersFile)
		if err == nil {
			auth.Header, err = originhttp.ParseHeaders(text)
		}
		if err != nil {
			return auth, fmt.Errorf("headers_file: %s: %w", c.HeadersFile, err)
		}
	}
	if c.Sign == "" {
		return auth, nil
	}
	key, err := readSmall(c.KeyFile)
	switch {
	case err != nil:
	case c.Sign == site.SignNginx:
		names := [2]string{"md5", "expires"}
		copy(names[:], c.Parameters)
		auth.Sign, err = originhttp.NewNginx(strings.TrimRight(string(key), "\r\n"), names[0], names[1])
	default:
		auth.Sign, err = originhttp.NewCloudFront(c.KeyPairID, key)
	}
	if err != nil {
		return auth, fmt.Errorf("key_file: %s: %w", c.KeyFile, err)
	}
	return auth, nil
}

// readSmall reads a file of bounded length.
func readSmall(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAuthFile+1))
	return text, cmp.Or(err, tooLong(len(text)))
}

func tooLong(n int) error {
	if n > maxAuthFile {
		return fmt.Errorf("is longer than %d bytes", maxAuthFile)
	}
	return nil
}
