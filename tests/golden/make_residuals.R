# Writes residuals.json: residuals of coxph, plain, weighted and summed over clusters. Run in this folder.
suppressMessages(library(survival))
source("json.R")
lung<-read.csv("lung.csv"); heart<-read.csv("heart.csv"); heart$weight<-1+(heart$id%%4)/2
control<-coxph.control(eps=1e-12,iter.max=100,toler.chol=1e-14)
of<-function(f,cluster){
  some<-function(r) if(is.matrix(r)) unname(r)[seq_len(min(12,nrow(r))),,drop=FALSE] else unname(r)[1:12]
  kinds<-c("martingale","deviance","score","dfbeta","dfbetas")
  plain<-lapply(setNames(kinds,kinds),function(k) some(residuals(f,type=k)))
  weighted<-lapply(setNames(kinds[-2],kinds[-2]),function(k) some(residuals(f,type=k,weighted=TRUE)))
  unweighted<-lapply(setNames(kinds[4:5],kinds[4:5]),function(k) some(residuals(f,type=k,weighted=FALSE)))
  # rowsum sorts the labels of clusters
  collapsed<-lapply(setNames(kinds,kinds),function(k) some(residuals(f,type=k,collapse=cluster)))
  r<-residuals(f,type="scaledsch"); r<-if(is.matrix(r)) r else matrix(r); t<-as.numeric(rownames(r))
  list(plain=plain,weighted=weighted,unweighted=unweighted,collapsed=collapsed,
    scaled=list(sum=unname(colSums(r)),squares=unname(colSums(r^2)),n=nrow(r)))
}
F<-Surv(time,event)~age+sex+ph.ecog
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival"))),
  lung=of(coxph(F,lung,ties="efron",control=control),lung$inst),
  lung_breslow=of(coxph(F,lung,ties="breslow",control=control),lung$inst),
  lung_weighted=of(coxph(F,lung,ties="efron",weights=weight,control=control),lung$inst),
  lung_breslow_weighted=of(coxph(F,lung,ties="breslow",weights=weight,control=control),lung$inst),
  heart=of(coxph(Surv(start,stop,event)~age+year+surgery,heart,ties="breslow",control=control),heart$id),
  heart_weighted=of(coxph(Surv(start,stop,event)~age+year+surgery,heart,ties="efron",weights=weight,control=control),heart$id))
writeLines(json(out),"residuals.json")
