const width = 112;
const height = 63;

/** A small picture of what the video shows, as a data URL; taken at most once a second. */
export class Thumbnail {
  url = '';
  private readonly video: HTMLVideoElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D | null;

  constructor(video: HTMLVideoElement) {
    this.video = video;
    this.canvas = document.createElement('canvas');
    this.canvas.width = width;
    this.canvas.height = height;
    this.context = this.canvas.getContext('2d', { willReadFrequently: true });
  }

  take(): void {
    if (this.context === null || this.video.readyState < 2) return;
    try {
      this.context.drawImage(this.video, 0, 0, width, height);
      this.url = this.canvas.toDataURL('image/jpeg', 0.6);
    } catch {
      // A film from another origin without CORS may be shown but not read: the screens stay plain.
      this.url = '';
    }
  }
}
