package app

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
	"github.com/leeway-video/leeway/internal/cmdline"
	"github.com/leeway-video/leeway/internal/packaging"
	"github.com/leeway-video/leeway/internal/site"
	"github.com/leeway-video/leeway/internal/sleep"
)

type certifyCmd struct {
	Target  string        `arg:"" optional:"" help:"Folder with HLS playlists or MPDs and their segments, or one playlist or MPD." placeholder:"DIR|PLAYLIST" type:"path"`
	Key     string        `help:"Packager's signing key; made when it is missing." required:"" placeholder:"FILE" type:"path"`
	Public  bool          `help:"Print the public half of the key, as a line for the site's configuration, and sign nothing."`
	Site    string        `help:"Name of the site; not needed where the configuration has one site." placeholder:"NAME"`
	Path    string        `help:"Path of the folder on the site." default:"/" placeholder:"/PATH/"`
	Watch   bool          `help:"Go on until interrupted: sign playlists that change, as a live packager's do."`
	Receive string        `help:"Take what a packager pushes by HTTP (PUT, DELETE) to this address of the machine into the folder, until interrupted. A playlist is signed before it can be read." placeholder:"HOST:PORT"`
	Stdout  bool          `help:"Write the list of the one playlist to standard output, for a store that is no folder."`
	Life    time.Duration `help:"How long certificates of a playlist with an end are valid, at most 31 days. (Those of a live playlist: its duration and 10 minutes.)" default:"720h"`
	Again   bool          `help:"Sign everything anew, as after a purge."`
	Jobs    int           `help:"Segments read at a time; by default one for each processor." placeholder:"N"`
}

// Help is shown below the usage.
func (certifyCmd) Help() string {
	return `Writes a file PLAYLIST.leeway beside each playlist, and MPD.REPRESENTATION.leeway beside each MPD: the signed digests of the segments. Copy it to the origin with the media. Viewers then
share from the first segment on. What is signed already and has not changed is not read again.
With --watch and --receive each part of a low-latency playlist gets a file PART.leeway, too, which goes with the part. With --watch so do
the chunks of low-latency DASH while their segment is written.

Trackers have to know the key: put the line that --public prints into the site's configuration. Make the key once, keep it, and give
each machine that packages the same file or a key of its own.

Examples:
  leeway certify --key packager.key --public
  leeway certify --key packager.key --site demo --path /media/bbb/ ./bbb
  leeway certify --key packager.key --site demo --path /live/ --watch /var/www/live
  leeway certify --key packager.key --site demo --path /live/ --receive 127.0.0.1:8090 /var/www/live
  leeway certify --key packager.key --site demo --path /media/bbb/ --again ./bbb      # after leeway purge demo /media/bbb/
  leeway certify --key packager.key --site demo --path /media/bbb/ --stdout ./bbb/720p.m3u8 | aws s3 cp - s3://films/bbb/720p.m3u8.leeway`
}

// Run signs a folder or a playlist.
func (c *certifyCmd) Run(ctx context.Context, r *run) error {
	switch {
	case c.Public && c.Target == "":
		return c.printKey(r)
	case c.Public || c.Target == "":
		return cmdline.Usage(errors.New("certify: name a folder or a playlist to sign, or --public to see the key"))
	}
	root, file, err := c.open()
	if err != nil {
		return cmdline.Usage(fmt.Errorf("certify: %w", err))
	}
	defer root.Close()
	switch {
	case c.Watch && (file != "" || c.Stdout):
		return cmdline.Usage(errors.New("certify: --watch takes a folder, and writes beside its playlists"))
	case c.Receive != "" && (file != "" || c.Stdout):
		return cmdline.Usage(errors.New("certify: --receive takes a folder, and writes what is pushed into it"))
	case c.Watch && c.Receive != "":
		return cmdline.Usage(errors.New("certify: --receive signs what is pushed, and --watch what is written: name one of them"))
	case c.Stdout && file == "":
		return cmdline.Usage(errors.New("certify: --stdout takes one playlist"))
	}
	if err := c.receivesHere(); err != nil {
		return err
	}
	s, err := c.site(r)
	if err != nil {
		return err
	}
	key, _, err := c.key(r)
	if err != nil {
		return err
	}
	jobs := cmp.Or(c.Jobs, runtime.GOMAXPROCS(0))
	p, err := packaging.New(packaging.Settings{
		Site: s, Key: key, Root: root, Path: c.Path, Life: c.Life, Again: c.Again || c.Stdout, Parts: c.Watch || c.Receive != "", Workers: jobs, Now: time.Now,
	})
	if err != nil {
		return cmdline.Usage(fmt.Errorf("certify: %w", err))
	}
	switch {
	case c.Watch:
		return c.watch(ctx, r, p)
	case c.Receive != "":
		return c.receive(ctx, r, p)
	case c.Stdout:
		return c.print(ctx, r, p, file)
	}
	return c.once(ctx, r, p, file)
}

// open returns the folder, and the playlist where one is named.
func (c *certifyCmd) open() (root *os.Root, file string, err error) {
	info, err := os.Stat(c.Target)
	if err != nil {
		return nil, "", err
	}
	dir := c.Target
	if !info.IsDir() {
		dir, file = filepath.Split(c.Target)
	}
	root, err = os.OpenRoot(dir)
	return root, file, err
}

// site is the configured one, or one with the rules that a site has by default.
func (c *certifyCmd) site(r *run) (*site.Site, error) {
	config, err := r.operator()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range config.Sites {
		if s.Name == c.Site || c.Site == "" && len(config.Sites) == 1 {
			return site.New(s)
		}
		names = append(names, s.Name)
	}
	switch {
	case c.Site == "":
		return nil, cmdline.Usage(fmt.Errorf("certify: name the site with --site (configured: %s)", strings.Join(names, ", ")))
	case len(names) > 0:
		return nil, cmdline.Usage(fmt.Errorf("certify: site %q is none of the configured ones: %s", c.Site, strings.Join(names, ", ")))
	}
	s, err := site.New(site.Config{Name: c.Site, Hosts: []string{"localhost"}})
	if err != nil {
		return nil, cmdline.Usage(fmt.Errorf("certify: %w", err))
	}
	return s, nil
}

// key reads the signing key, or makes it and says what trackers need of it.
func (c *certifyCmd) key(r *run) (key *ecdsa.PrivateKey, public string, err error) {
	key, public, made, err := packagerKey(c.Key)
	if err != nil {
		return nil, "", fmt.Errorf("certify: %w", err)
	}
	if made {
		fmt.Fprintf(r.env.Stderr, "certify: made the signing key %s. Trackers need its public half: leeway certify --key %[1]s --public\n", c.Key)
	}
	return key, public, nil
}

// printKey writes what the site's configuration needs of the key, and the ID that a revocation names.
func (c *certifyCmd) printKey(r *run) error {
	key, public, err := c.key(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.env.Stdout, "packager_keys: [%s] # key %s\n", public, certificate.KeyIDOf(&key.PublicKey))
	return err
}

// print writes the list of one playlist to standard output.
func (c *certifyCmd) print(ctx context.Context, r *run, p *packaging.Packager, file string) error {
	plan, err := p.Plan(file)
	if err != nil {
		return err
	}
	lists, err := plan.Sign(ctx)
	if err != nil {
		return err
	}
	if len(lists) > 1 {
		return cmdline.Usage(fmt.Errorf("certify: %s has %d lists, one for each representation, and --stdout writes one: sign it without, and copy %s.*%s", file, len(lists), file, packaging.Suffix))
	}
	if _, err := r.env.Stdout.Write(lists[0].Data); err != nil {
		return fmt.Errorf("certify: %w", err)
	}
	return told(r, plan)
}

// once signs a playlist, or all of the folder. What cannot be read holds up nothing else, and is told at the end.
func (c *certifyCmd) once(ctx context.Context, r *run, p *packaging.Packager, file string) error {
	plans, unread := plansOf(p, file)
	var total int64
	for _, plan := range plans {
		total += plan.Bytes
	}
	if len(plans) == 0 && unread == nil {
		return cmdline.Usage(fmt.Errorf("certify: there is no media playlist (*.m3u8) and no MPD (*.mpd) in %s", c.Target))
	}
	stop := signing(r.env.Stderr, p, total)
	defer stop()
	errs := []error{unread}
	for _, plan := range plans {
		_, err := p.Finish(ctx, plan)
		if err != nil && ctx.Err() != nil {
			return err
		}
		errs = append(errs, err, told(r, plan))
	}
	return errors.Join(errs...)
}

func plansOf(p *packaging.Packager, file string) ([]*packaging.Plan, error) {
	if file == "" {
		return p.Plans()
	}
	plan, err := p.Plan(file)
	if err != nil {
		return nil, err
	}
	return []*packaging.Plan{plan}, nil
}

// watch signs what changes, until it is interrupted.
func (c *certifyCmd) watch(ctx context.Context, r *run, p *packaging.Packager) error {
	ticker := time.NewTicker(packaging.Every)
	defer ticker.Stop()
	fmt.Fprintf(r.env.Stderr, "certify: watching %s\n", c.Target)
	return p.Watch(ctx, ticker.C, func(_ string, plan *packaging.Plan, err error) {
		if err == nil {
			err = told(r, plan)
		}
		if err != nil {
			fmt.Fprintln(r.env.Stderr, err)
		}
	})
}

// told says what a list has. Files that are not there are an error where the playlist is whole.
func told(r *run, plan *packaging.Plan) error {
	line := fmt.Sprintf("certify %s: %d segments", plan.File, plan.Segments())
	if plan.Kept > 0 {
		line += fmt.Sprintf(", %d of them unchanged", plan.Kept)
	}
	if plan.Parts > 0 {
		line += fmt.Sprintf(", %d parts", plan.Parts)
	}
	if plan.Unsaid > 0 {
		line += fmt.Sprintf("; %d left out (another site or folder, too long, or more than viewers take)", plan.Unsaid)
	}
	fmt.Fprintln(r.env.Stderr, line)
	if plan.Refused != nil {
		fmt.Fprintf(r.env.Stderr, "certify %s: not all has a list: %v\n", plan.File, plan.Refused)
	}
	if len(plan.Missing) > 0 && !plan.Live {
		return fmt.Errorf("certify %s: %d files are not there, the first is %s (the others are signed)", plan.File, len(plan.Missing), plan.Missing[0])
	}
	return nil
}

// signing writes a line each second until stop is called.
func signing(w io.Writer, p *packaging.Packager, total int64) (stop func()) {
	return runUntilStopped(func(ctx context.Context) {
		last := int64(0)
		for sleep.For(ctx, time.Second) {
			read := p.Read()
			fmt.Fprintf(w, "certify: %.1f of %.1f GB, %d MB/s\n", float64(read)/1e9, float64(total)/1e9, (read-last)/1e6)
			last = read
		}
	})
}
